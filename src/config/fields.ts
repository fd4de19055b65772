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
  return z.string().check((payload) => complain(payload, [], faultOf(payload.value)));
}

/** What a check of zod's gives to say what is wrong. */
type Complaints = Pick<z.core.ParsePayload, 'value' | 'issues'>;

/** Says what is wrong with the part of a value at `path`; nothing when there is no fault. */
export function complain({ value, issues }: Complaints, path: PropertyKey[], fault: Fault | undefined): void {
  if (fault === undefined) return;
  issues.push({ code: 'custom', input: value, path, message: fault.message, params: { remedy: fault.remedy } });
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

/** A check of lists and maps that must hold something. */
export function refuseEmpty(remedy: string) {
  return (payload: z.core.ParsePayload<object>): void => {
    if (Object.keys(payload.value).length === 0) complain(payload, [], { message: 'is empty', remedy });
  };
}

/** A Node timer with a longer delay would fire at once. */
export const longestDelayMs = 2_147_483_647;

/** Milliseconds; with `min` 0 where 0 stands for no end. */
export function timeoutMs(min: 0 | 1 = 1) {
  return wholeNumber(min, longestDelayMs);
}

/** An RFC 9110 section 5.1 field name, in lower case from here on. */
export function headerName() {
  return text(headerNameFault).transform((name) => name.toLowerCase());
}

/** A service reference with one of these schemes, or none; the path of a request comes from the request. */
export function serviceReference(schemes: readonly ServiceReference['scheme'][]) {
  const remedy = `Write the name of a service, name:port${schemes.map((scheme) => `, or ${scheme}://host:port`).join('')}.`;
  return text((reference) => {
    const parsed = parseServiceReference(reference);
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
    /\S/.test(value) && !/\p{Cc}/u.test(value)
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
          remedy: isAmbassadors(version)
            ? "Write apiVersion: gateway/v1; with GATEWAY_DOMAIN=getambassador.io records of Ambassador's v0 to v3alpha1 are read."
            : 'Write apiVersion: gateway/v1',
        },
  ),
  kind: z.string(),
  name: label(),
} as const;

export function isAmbassadors(apiVersion: string): boolean {
  return /^(?:ambassador|(?:x\.)?getambassador\.io)\//.test(apiVersion);
}

export function headerNameFault(name: string): Fault | undefined {
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return undefined;
  return {
    message: `${JSON.stringify(name)} is not a header name`,
    remedy: 'Write the name alone, for example X-Travel-User: no colon, no spaces.',
  };
}
