/** Patterns with `*` in them: the parts between the stars, looked for from left to right. */

export type Matches = (text: string) => boolean;

/** `*` stands for any text, the empty one as well; everything else for itself. Takes time linear in the text for each part. */
export function compileWildcard(pattern: string): Matches {
  const parts = pattern.split('*');
  const first = parts[0] ?? '';
  const last = parts.length > 1 ? (parts.at(-1) ?? '') : '';
  const middle = parts.slice(1, -1);
  if (parts.length === 1) return (text) => text === pattern;
  return (text) => {
    if (!text.startsWith(first) || !text.endsWith(last)) return false;
    let from = first.length;
    for (const part of middle) {
      const at = text.indexOf(part, from);
      if (at === -1) return false;
      from = at + part.length;
    }
    // The end that was found must not begin inside what the parts before it have used up.
    return text.length - last.length >= from;
  };
}
