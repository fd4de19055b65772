/** The deadline of a call, `grpc-timeout`: up to eight digits and a unit (grpc/grpc, doc/PROTOCOL-HTTP2.md). */

/** In milliseconds. */
const units: Readonly<Record<string, number>> = { n: 1e-6, u: 1e-3, m: 1, S: 1000, M: 60_000, H: 3_600_000 };

/** Returns milliseconds, which may be a fraction. Undefined for anything else, for which gRPC servers end the call. */
export function parseGrpcTimeout(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  const unitMs = units[unit];
  return unitMs === undefined ? undefined : Number(digits) * unitMs;
}

/** Rounds up to the next millisecond, or to the next larger unit beyond eight digits. */
export function formatGrpcTimeout(timeoutMs: number): string {
  for (const unit of ['m', 'S', 'M'] as const) {
    const count = Math.max(1, Math.ceil(timeoutMs / (units[unit] ?? 1)));
    if (count <= digitsMax) return `${count}${unit}`;
  }
  return `${Math.min(digitsMax, Math.ceil(timeoutMs / 3_600_000))}H`;
}

const digitsMax = 99_999_999;
