// Names for a job that is to run again.

/** Characters of the longest name of a job. */
const LONGEST = 255;

/** Return the name that follows: `train` gives `train-2`, `train-2` gives `train-3`. */
export function freshName(name: string): string {
  const [, stem, number] = /^(.*?)(?:-([1-9]\d{0,5}))?$/.exec(name)!;
  const ending = `-${number === undefined ? 2 : Number(number) + 1}`;
  return `${(stem ?? '').slice(0, LONGEST - ending.length)}${ending}`;
}
