//! `strftime` as glibc has it in the C locale, which is what Python calls on Linux.

use jiff::civil::DateTime;

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Flags between `%` and the letter.
#[derive(Clone, Copy, Default)]
struct Flags {
    pad: Option<char>,
    no_pad: bool,
    upper: bool,
    swap: bool,
    width: usize,
}

/// Formats a time without a zone. A letter that glibc does not know is left as it is.
pub(super) fn format(template: &str, time: DateTime) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let spec = &rest[at..];
        let mut chars = spec.char_indices().skip(1).peekable();
        let mut flags = Flags::default();
        while let Some((_, c)) = chars.peek() {
            match c {
                '-' => (flags.no_pad, flags.pad) = (true, None),
                '_' => (flags.no_pad, flags.pad) = (false, Some(' ')),
                '0' => (flags.no_pad, flags.pad) = (false, Some('0')),
                '^' => flags.upper = true,
                '#' => flags.swap = true,
                _ => break,
            }
            chars.next();
        }
        while let Some(digit) = chars.peek().and_then(|(_, c)| c.to_digit(10)) {
            flags.width = flags.width * 10 + digit as usize;
            if flags.width > 1000 {
                return Err("a strftime width of more than 1000".into());
            }
            chars.next();
        }
        if chars.peek().is_some_and(|(_, c)| matches!(c, 'E' | 'O')) {
            chars.next();
        }
        let Some((i, letter)) = chars.next() else {
            // A lone `%` at the end stays.
            out.push_str(spec);
            return Ok(out);
        };
        let end = i + letter.len_utf8();
        match directive(letter, time, flags) {
            Some(text) => out.push_str(&text),
            None => out.push_str(&spec[..end]),
        }
        rest = &spec[end..];
    }
    out.push_str(rest);
    Ok(out)
}

fn number(value: i64, width: usize, pad: char, flags: Flags) -> String {
    let width = if flags.no_pad { 1 } else { width.max(flags.width) };
    let digits = value.to_string();
    let fill = width.saturating_sub(digits.len());
    std::iter::repeat_n(flags.pad.unwrap_or(pad), fill).collect::<String>() + &digits
}

fn words(text: &str, flags: Flags) -> String {
    let text = if flags.upper || flags.swap { text.to_uppercase() } else { text.to_owned() };
    let fill = flags.width.saturating_sub(text.chars().count());
    std::iter::repeat_n(flags.pad.unwrap_or(' '), fill).collect::<String>() + &text
}

fn directive(letter: char, time: DateTime, flags: Flags) -> Option<String> {
    let plain = Flags::default();
    let date = time.date();
    let year = i64::from(time.year());
    let weekday = i64::from(date.weekday().to_sunday_zero_offset());
    let monday_weekday = i64::from(date.weekday().to_monday_zero_offset());
    let yearday = i64::from(date.day_of_year());
    let iso = date.iso_week_date();
    let hour = i64::from(time.hour());
    let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let day_name = DAYS.get(usize::try_from(weekday).ok()?)?;
    let month_name = MONTHS.get(usize::try_from(time.month() - 1).ok()?)?;
    let combined = |template: &str| words(&format(template, time).unwrap_or_default(), flags);
    let numbered = |value: i64, width, pad| number(value, width, pad, flags);
    Some(match letter {
        'a' => words(day_name.get(..3)?, flags),
        'A' => words(day_name, flags),
        'b' | 'h' => words(month_name.get(..3)?, flags),
        'B' => words(month_name, flags),
        'c' => combined("%a %b %e %H:%M:%S %Y"),
        'C' => numbered(year.div_euclid(100), 2, '0'),
        'd' => numbered(i64::from(time.day()), 2, '0'),
        'D' | 'x' => combined("%m/%d/%y"),
        'e' => numbered(i64::from(time.day()), 2, ' '),
        'f' => number(i64::from(time.subsec_nanosecond() / 1000), 6, '0', plain),
        'F' => combined("%Y-%m-%d"),
        'g' => numbered(i64::from(iso.year()).rem_euclid(100), 2, '0'),
        'G' => numbered(i64::from(iso.year()), 1, '0'),
        'H' => numbered(hour, 2, '0'),
        'I' => numbered(hour12, 2, '0'),
        'j' => numbered(yearday, 3, '0'),
        'k' => numbered(hour, 2, ' '),
        'l' => numbered(hour12, 2, ' '),
        'm' => numbered(i64::from(time.month()), 2, '0'),
        'M' => numbered(i64::from(time.minute()), 2, '0'),
        'n' => "\n".into(),
        'p' => {
            let text = if hour < 12 { "AM" } else { "PM" };
            let text = if flags.swap { text.to_lowercase() } else { text.to_owned() };
            words(&text, Flags { swap: false, ..flags })
        }
        'P' => words(if hour < 12 { "am" } else { "pm" }, flags),
        'r' => combined("%I:%M:%S %p"),
        'R' => combined("%H:%M"),
        's' => {
            let zoned = time.to_zoned(jiff::tz::TimeZone::system()).ok()?;
            numbered(zoned.timestamp().as_second(), 1, '0')
        }
        'S' => numbered(i64::from(time.second()), 2, '0'),
        't' => "\t".into(),
        'T' | 'X' => combined("%H:%M:%S"),
        'u' => numbered(monday_weekday + 1, 1, '0'),
        'U' => numbered((yearday - 1 + 7 - weekday) / 7, 2, '0'),
        'V' => numbered(i64::from(iso.week()), 2, '0'),
        'w' => numbered(weekday, 1, '0'),
        'W' => numbered((yearday - 1 + 7 - monday_weekday) / 7, 2, '0'),
        'y' => numbered(year.rem_euclid(100), 2, '0'),
        'Y' => numbered(year, 1, '0'),
        'z' | 'Z' => String::new(),
        '%' => "%".into(),
        _ => return None,
    })
}
