/** A logger that can be waited for. */
export function createHeardLog() {
  let lines: string[] = [];
  let heard = () => {};
  const line = (_fields: object, message = '') => {
    lines.push(message);
    heard();
  };
  const matches = (wanted: string | RegExp) => (text: string) =>
    typeof wanted === 'string' ? text === wanted : wanted.test(text);
  return {
    logger: { info: line, warn: line, error: line },
    /** What was said until then is forgotten. */
    async said(wanted: string | RegExp): Promise<void> {
      while (!lines.some(matches(wanted))) {
        await new Promise<void>((resolve) => {
          heard = resolve;
        });
      }
      lines = [];
    },
  };
}
