/** Which headers and parameters hold what is shown to nobody. */

/** Names that speak of a secret, whether clients send it or a record sets it. */
const secret =
  /authorization|cookie|token|secret|passw|credential|signature|session|(?:^|[-_])(?:api[-_]?key|auth|key|jwt|pass|pwd)(?:[-_]|$)/i;

/** Whether the value of a header or a parameter of this name is for nobody else to read. */
export function namesSecret(name: string): boolean {
  return secret.test(name);
}
