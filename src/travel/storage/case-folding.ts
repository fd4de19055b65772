/** Folds the case of a search text, and returns what a database must replace in its own text to fold it in the same way. */

export interface FoldedText {
  readonly text: string;
  /**
   * Letters outside ASCII, each with what replaces it before the comparison. Only those that fold to a letter of the
   * text: all others cannot match it in any case.
   */
  readonly replacements: readonly (readonly [letter: string, folded: string])[];
}

/** The dot that `İ` leaves behind when it is converted to lower case. */
const combiningDot = '\u0307';

/**
 * Folds each letter to a single one (Unicode's simple case folding), whatever the language: `ς` equals `Σ`, and `ß` does
 * not equal `SS`. Both Turkish letters, `İ` and `ı`, equal `i`, so `istanbul` finds `İstanbul`.
 */
export function foldCase(text: string): FoldedText {
  const folded = Array.from(text, foldLetter).join('');
  const replacements = [...new Set(folded)].flatMap((letter) =>
    lettersThatFoldTo(letter).map((other) => [other, letter] as const),
  );
  if (!folded.includes('i')) return { text: folded, replacements };
  return { text: folded.replaceAll(combiningDot, ''), replacements: [...replacements, [combiningDot, '']] };
}

function foldLetter(letter: string): string {
  if (letter === 'İ') return 'i';
  const upper = letter.toUpperCase();
  const lower = (upper.length === letter.length ? upper : letter).toLowerCase();
  return lower.length === letter.length ? lower : letter;
}

function lettersThatFoldTo(folded: string): readonly string[] {
  const upper = folded.toUpperCase();
  const usual = upper !== folded && upper.length === folded.length && upper > '\x7f' ? [upper] : [];
  return [...usual, ...unusualLetters.filter((letter) => foldLetter(letter) === folded)];
}

/** The letters that are not the upper case of what they fold to: `ı`, the Kelvin sign, `ς`, the capital `ß` and so on. */
const unusualLetters = Array.from(
  [
    '\u{b5}\u{130}\u{131}\u{17f}\u{1c5}\u{1c8}\u{1cb}\u{1f2}\u{345}\u{3c2}\u{3d0}\u{3d1}\u{3d5}\u{3d6}\u{3f0}\u{3f1}',
    '\u{3f4}\u{3f5}\u{1c80}\u{1c81}\u{1c82}\u{1c83}\u{1c84}\u{1c85}\u{1c86}\u{1c87}\u{1c88}\u{1e9b}\u{1e9e}\u{1f88}',
    '\u{1f89}\u{1f8a}\u{1f8b}\u{1f8c}\u{1f8d}\u{1f8e}\u{1f8f}\u{1f98}\u{1f99}\u{1f9a}\u{1f9b}\u{1f9c}\u{1f9d}\u{1f9e}',
    '\u{1f9f}\u{1fa8}\u{1fa9}\u{1faa}\u{1fab}\u{1fac}\u{1fad}\u{1fae}\u{1faf}\u{1fbc}\u{1fbe}\u{1fcc}\u{1ffc}\u{2126}',
    '\u{212a}\u{212b}',
  ].join(''),
);
