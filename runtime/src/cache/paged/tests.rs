//! Pages: how the arena grows, and which page a row takes.

use super::*;

/// `n` columns of two rows: the number of each is its value, the second row's from 1000 on.
fn columns(rows: i32, from: i32, n: i32) -> Vec<Array> {
    let data: Vec<f32> =
        (0..rows).flat_map(|row| (from..from + n).map(move |t| (1000 * row + t) as f32)).collect();
    vec![Array::from_slice(&data, &[rows, 1, n, 1])]
}

fn append(store: &mut PagedStore, rows: i32, from: i32, n: i32) {
    let line = Timeline { time: from, pads: vec![0; rows as usize] };
    store.append(&columns(rows, from, n), n, &line).unwrap();
}

fn numbers(store: &PagedStore, b: usize) -> Vec<f32> {
    let planes = store.row(b).unwrap().unwrap();
    planes[0].to_vec_cast::<f32>().unwrap()
}

fn table(store: &PagedStore, b: usize) -> &[i32] {
    &store.rows[b].table
}

#[test]
fn the_arena_begins_with_a_page_and_grows_by_half() {
    let _alone = crate::alone();
    let mut store = PagedStore::new(2, 4);
    let mut seen = vec![store.pages];
    for at in 0..60 {
        append(&mut store, 1, at, 1);
        if seen.last() != Some(&store.pages) {
            seen.push(store.pages);
        }
        // No more than is needed.
        assert_eq!(store.rows[0].table.len() as i32, at / 4 + 1);
        assert_eq!(store.buffers()[0].dim(2), store.pages * 4);
    }
    assert_eq!(seen, [0, 1, 2, 3, 4, 6, 9, 13, 19]);
    assert_eq!(numbers(&store, 0), (0..60).map(|t| t as f32).collect::<Vec<_>>());
    // Pages are taken in order, so that the row is read as it lies.
    assert!(store.rows[0].in_a_row());
}

#[test]
fn pages_behind_the_end_are_freed_and_taken_again() {
    let _alone = crate::alone();
    let mut store = PagedStore::new(2, 4);
    append(&mut store, 1, 0, 22);
    assert_eq!(table(&store, 0), [0, 1, 2, 3, 4, 5]);
    // Within a page, to its beginning, and beyond.
    store.trim(1).unwrap();
    assert_eq!(table(&store, 0).len(), 6);
    store.trim(1).unwrap();
    assert_eq!(table(&store, 0).len(), 5);
    store.trim(13).unwrap();
    assert_eq!((store.rows[0].len, table(&store, 0)), (7, &[0, 1][..]));
    assert_eq!(store.free, [5, 4, 3, 2]);
    store.trim(8).unwrap_err();
    let pages = store.pages;
    append(&mut store, 1, 7, 6);
    assert_eq!((table(&store, 0), store.pages), (&[0, 1, 2, 3][..], pages));
    assert_eq!(numbers(&store, 0), (0..13).map(|t| t as f32).collect::<Vec<_>>());
    store.trim(13).unwrap();
    assert_eq!((store.free.len() as i32, store.row(0).unwrap().is_none()), (store.pages, true));
}

#[test]
fn rows_take_the_page_behind_theirs_or_the_lowest() {
    let _alone = crate::alone();
    let mut store = PagedStore::new(2, 2);
    for at in 0..6 {
        append(&mut store, 2, at, 1);
    }
    // Each page was wanted by its row, where it was free.
    let owned: Vec<i32> = [table(&store, 0), table(&store, 1)].concat();
    let mut sorted = owned.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 6, "{owned:?}");
    let rest = |store: &PagedStore| (0..store.pages).filter(|p| !owned.contains(p)).count();
    assert_eq!(store.free.len(), rest(&store));
    for b in 0..2 {
        let want: Vec<f32> = (0..6).map(|t| (1000 * b + t) as f32).collect();
        assert_eq!(numbers(&store, b as usize), want);
    }
    // The first row's pages serve the second one, the lowest first.
    let freed = table(&store, 0).to_vec();
    store.trim_each(&[6, 0]).unwrap();
    assert_eq!(store.free.last(), freed.iter().min());
    store.filter(&[1]).unwrap();
    assert_eq!(numbers(&store, 0), (1000..1006).map(|t| t as f32).collect::<Vec<_>>());
    // Alone it lies in pages of its own, one after the other.
    assert_eq!(table(&store, 0), [0, 1, 2]);
}
