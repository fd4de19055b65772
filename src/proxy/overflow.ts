/** What a circuit breaker answers in place of a service: there is enough under way already. */

/** `code` as the table of failures has it. */
export class Overflow extends Error {
  override readonly name = 'Overflow';
  readonly code = 'OVERFLOW';
}
