/** A host as rules compare it. */

/** `API.Example.:8080` is `api.example`; `[::1]:80` is `[::1]`. */
export function bareHost(authority: string): string {
  return authority.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}
