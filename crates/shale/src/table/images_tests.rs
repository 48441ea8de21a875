use super::*;

#[test]
fn classes_are_at_most_an_eighth_larger_and_ascend() {
    let mut last = (0, 0);
    for bytes in BYTES_MIN..=BYTES_MAX {
        let (class, size) = class_of(bytes);
        assert!(size >= bytes && size - bytes <= bytes / 8 + 1, "{bytes}: {size}");
        assert_eq!(class_of(size), (class, size), "{bytes}");
        let next = class == last.0 && size == last.1 || class == last.0 + 1 && size > last.1;
        assert!(next || bytes == BYTES_MIN, "{bytes}: {class} {size} after {last:?}");
        last = (class, size);
    }
    assert_eq!(last, (CLASSES - 1, BYTES_MAX));
    assert_eq!(class_of(16 << 10).1, 16 << 10);
}

#[test]
fn images_of_all_lengths_are_apart() {
    let images = Images::new(1 << 20);
    let lengths = [0, 1, 511, 512, 513, 4096, 16_000, 16_384, 16_385, BYTES_MAX, BYTES_MAX + 1];
    for round in 0..3u8 {
        let mut held: Vec<Image> = Vec::new();
        for (number, &bytes) in lengths.iter().cycle().take(100).enumerate() {
            let mut image = images.image(bytes);
            assert_eq!(image.len(), bytes);
            image.bytes_mut().fill(number as u8 ^ round);
            held.push(image);
        }
        for (number, image) in held.iter().enumerate() {
            assert!(image.iter().all(|&byte| byte == number as u8 ^ round), "{number}");
        }
    }
}

#[test]
fn few_free_buffers_keep_their_pages() {
    let images = Images::new(64 * 100_000);
    let held: Vec<Image> = (0..50).map(|_| images.image(16_000)).collect();
    assert_eq!(images.free_bytes(), 0);
    drop(held);
    assert_eq!(images.free_bytes(), 6 * 16_384);
    let again: Vec<Image> = (0..50).map(|_| images.image(16_001)).collect();
    assert_eq!(images.free_bytes(), 0);
    drop(images);
    assert!(again.iter().all(|image| image.len() == 16_001), "images outlive their home's owner");
}

#[test]
fn an_image_is_used_again_for_another_length() {
    let images = Images::new(1 << 30);
    let image = images.image(16_000).resized(16_384);
    assert!(image.len() == 16_384 && image.home.is_some());
    let image = image.resized(20_000);
    assert!(image.len() == 20_000 && image.home.is_none());
    assert_eq!(images.free_bytes(), 16_384);
    assert_eq!(image.resized(30).capacity(), 20_000);
}

#[test]
fn threads_share_images() {
    let images = Images::new(1 << 20);
    std::thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::channel::<Image>();
        for thread in 0..3u8 {
            let (images, send) = (images.clone(), send.clone());
            scope.spawn(move || {
                for round in 0..if cfg!(miri) { 20 } else { 2_000usize } {
                    let mut image = images.image(600 + (round * 37) % 20_000);
                    image.bytes_mut().fill(thread);
                    send.send(image).unwrap();
                }
            });
        }
        drop(send);
        scope.spawn(move || {
            for image in receive {
                assert!(image.iter().all(|&byte| byte == image[0]));
            }
        });
    });
}
