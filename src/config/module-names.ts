/** The parts of frontdesk that can run apart, each as a process, or all in one; records name services by the same names. */
export const moduleNames = ['gateway', 'auth', 'ratelimit', 'hotel', 'car', 'api'] as const;
export type ModuleName = (typeof moduleNames)[number];
