// Many requests without standing in anybody's way: a browser has six connections to a server, and what a person waits
// for needs one.

/** Do something with each of many things in their order, `most` of them at once; resolves when all are done. */
export async function fewAtOnce<Item>(
  items: Iterable<Item>,
  most: number,
  act: (item: Item) => Promise<void>
): Promise<void> {
  const left = items[Symbol.iterator]();
  const work = async () => {
    for (let item = left.next(); !item.done; item = left.next()) {
      await act(item.value);
    }
  };
  await Promise.all(Array.from({ length: most }, work));
}
