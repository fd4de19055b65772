/** The kinds of fields that records are made of, as zod schemas whose issues say what is wrong and what to do. */
import * as z from 'zod';
import { parseServiceReference, type ServiceReference } from './references.ts';

/** `message` reads on after the field's name: `prefix "x" does not start with "/"`. */
export interface Fault {
  readonly message: string;
  readonly remedy: string;
}

/** A string that `faultOf` has nothing against. */
export function text(faultOf: (text: string) => Fault | undefined) {
  return z.string().check(({ value, issues }) => {
    const fault = faultOf(value);
    if (fault !== undefined) {
      issues.push({
        code: 'custom',
        input: value,
        message: fault.message,
        params: { remedy: fault.remedy },
      });
    }
  });
}

/**
 * A map with these keys and no others. zod hands on a message and nothing else, so the message lists the known keys;
 * `refused` are those of the shape that are there to be told why not.
 */
export function strict<Shape extends z.core.$ZodLooseShape>(shape: Shape, refused: readonly string[] = []) {
  const known = Object.keys(shape)
    .filter((key) => !refused.includes(key))
    .join(' ');
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? known : undefined),
  });
}

export function wholeNumber(min: number, max: number) {
  return z.number().check(({ value, issues }) => {
    if (Number.isInteger(value) && value >= min && value <= max) return;
    const message = `must be a whole number from ${min} to ${max}, not ${value}`;
    issues.push({ code: 'custom', input: value, message });
  });
}

/** Milliseconds; a Node timer with a longer delay would fire at once. */
export function timeoutMs() {
  return wholeNumber(1, 2_147_483_647);
}

/** An RFC 9110 section 5.1 field name, in lower case from here on. */
export function headerName() {
  return text(headerNameFault).transform((name) => name.toLowerCase());
}

/** A service reference with one of these schemes, or none; the path of a request comes from the request. */
export function serviceReference(schemes: readonly ServiceReference['scheme'][]) {
  return text((reference) => {
    const parsed = parseServiceReference(reference);
    const remedy = `Write the name of a service, name:port${schemes.map((scheme) => `, or ${scheme}://host:port`).join('')}.`;
    if (parsed === undefined)
      return {
        message: `${JSON.stringify(reference)} is not a service reference`,
        remedy,
      };
    if (parsed.scheme !== undefined && !schemes.includes(parsed.scheme)) {
      return {
        message: `${JSON.stringify(reference)} has a scheme that is not spoken here`,
        remedy,
      };
    }
    if (parsed.path === undefined) return undefined;
    return { message: `${JSON.stringify(reference)} has a path`, remedy };
  });
}

/** Any text with something to see in it and on one line. */
export function label() {
  return text((value) =>
    /^[^\p{Cc}]*\S[^\p{Cc}]*$/u.test(value)
      ? undefined
      : {
          message: 'is empty or holds control characters',
          remedy: 'Give it a name of one line.',
        },
  );
}

/** What every record opens with; the kind is known by the time the rest is looked at. */
export const envelope = {
  apiVersion: text((version) =>
    version === 'gateway/v1'
      ? undefined
      : {
          message: `${JSON.stringify(version)} is not known`,
          remedy: 'Write apiVersion: gateway/v1',
        },
  ),
  kind: z.string(),
  name: label(),
} as const;

function headerNameFault(name: string): Fault | undefined {
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return undefined;
  return {
    message: `${JSON.stringify(name)} is not a header name`,
    remedy: 'Write the name alone, for example X-Travel-User: no colon, no spaces.',
  };
}
