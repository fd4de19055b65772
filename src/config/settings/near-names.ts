/** Finds the setting that a similar name was meant to be, without mistaking the variables of other programs for ours. */
import { editDistance } from '../errors.ts';

/** What other programs put before the names of their settings. */
const ownPrefix = 'FRONTDESK_';

/** The value of a variable such as AUTH_PORT that Kubernetes and Docker set for a service named `auth`. */
export const serviceLink = /^(?:tcp|udp|sctp):\/\//;

/**
 * Returns the one of `settings` that an environment variable was probably meant to be. Names after FRONTDESK_ are meant
 * for us; other short ones, such as PORTS, are not.
 */
export function settingMeantBy(name: string, settings: readonly string[]): string | undefined {
  const upper = name.replace(/([a-z])(?=[A-Z])/g, '$1_').toUpperCase();
  const isOurs = upper.startsWith(ownPrefix);
  const given = isOurs ? upper.slice(ownPrefix.length) : upper;
  const lettersMin = isOurs ? 1 : 6;
  const isLong = (one: string) => one.length >= lettersMin;
  return isLong(given) ? settings.find((setting) => isLong(setting) && isNear(given, setting)) : undefined;
}

/** Whether the two differ in the order or number of words, in underscores, or by a mistake in typing. */
function isNear(given: string, setting: string): boolean {
  const words = given.split('_');
  const meant = setting.split('_');
  if (canonical(words) === canonical(meant)) return true;
  if (words.length === meant.length)
    return words.every((word, index) => isTyped(word, meant[index] ?? '')) && mistakes(words, meant) <= 2;
  const [first, second] = [words.join(''), meant.join('')];
  return first[0] === second[0] && editDistance(first, second) <= 1;
}

/** The words in the singular and sorted. */
function canonical(words: readonly string[]): string {
  return words.map(singular).sort().join('_');
}

function singular(word: string): string {
  return word
    .replace(/IES$/, 'Y')
    .replace(/(S[SH]|X)ES$/, '$1')
    .replace(/([^S])S$/, '$1');
}

function mistakes(words: readonly string[], meant: readonly string[]): number {
  return words.filter((word, index) => word !== meant[index]).length;
}

/** One typing mistake, or two in a long word. The first letter is right: OAUTH_PORT is not AUTH_PORT. */
function isTyped(word: string, meant: string): boolean {
  if (word === meant) return true;
  const slack = Math.min(word.length, meant.length) >= 8 ? 2 : 1;
  return word[0] === meant[0] && Math.abs(word.length - meant.length) <= slack && editDistance(word, meant) <= slack;
}
