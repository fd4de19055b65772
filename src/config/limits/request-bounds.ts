/** Bounds of a request to a rate-limit service: the service refuses what is beyond them, and labels keep to them. */

/**
 * Lengths in UTF-16 code units. A value may be as long as a whole header block, which has 60 KiB in Envoy: a gateway that
 * fails open would let a client pass whose header the service refuses.
 */
export const requestBounds = Object.freeze({ domain: 256, descriptors: 64, entries: 32, key: 256, value: 65_536 });

/** Of the whole request. */
export const requestBytesMax = 1_048_576;
