/** Which requests ask for another protocol, read before anybody answers them (RFC 9110 section 7.8). */
import { IncomingMessage } from 'node:http';

/**
 * HTTP/1.0 has no upgrade. Node's own check for `Host` comes too late for these requests, and their bodies are left where
 * they were, so that what follows can no longer be told from them.
 */
export function canUpgrade({ httpVersion, headers }: IncomingMessage): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
  return httpVersion === '1.1' && headers.host !== undefined && !hasBody;
}

/** The protocols that the client offers, best first, in lower case. */
export function protocolsOf({ headers }: IncomingMessage): readonly string[] {
  const names = (headers.upgrade ?? '').toLowerCase().split(',');
  return names.map((name) => name.trim());
}

const askedKey = Symbol('asked');
const takenKey = Symbol('taken');

/**
 * Node asks no more than whether its server has a listener for `upgrade`, and leaves the body of each request with that
 * header unread if it has (`shouldUpgradeCallback` comes with 24.9). But it asks the request first: this one says no for
 * all but those that `takes` wants, and is an ordinary one then. What it has said once it says again.
 */
export function upgradableRequest(takes: (req: IncomingMessage) => boolean): typeof IncomingMessage {
  return class UpgradableRequest extends IncomingMessage {
    [askedKey]?: boolean;
    [takenKey]?: boolean;

    get upgrade(): boolean {
      if (this[askedKey] !== true) return false;
      this[takenKey] ??= this.method === 'CONNECT' || takes(this);
      return this[takenKey];
    }

    set upgrade(asked: boolean | null) {
      this[askedKey] = asked === true;
    }
  };
}
