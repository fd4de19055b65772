/** The text and the code of whatever was thrown. */

/** Returns the code of an error of the system or of a library, such as `ENOENT`, or an empty string. */
export function codeOf(thrown: unknown): string {
  const { code = '' } = Object(thrown) as { readonly code?: unknown };
  return String(code);
}

/** Returns the message. An error without one is described by its code or its name. */
export function messageOf(thrown: unknown): string {
  // Node reports a refused connection to a name with several addresses as an AggregateError without a message.
  if (thrown instanceof AggregateError && thrown.message === '') return thrown.errors.map(messageOf).join(', ');
  return thrown instanceof Error ? thrown.message || codeOf(thrown) || thrown.name : String(thrown);
}
