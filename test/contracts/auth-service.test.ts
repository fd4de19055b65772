/** Runs the contract of auth services in other processes over HTTP/1.1, over HTTP/2 and over gRPC. */

import type { ServerResponse } from 'node:http';
import { status } from '@grpc/grpc-js';
import type { TestServers } from '../support/serve.ts';
import { type Described, type ForeignAnswer, startExtAuthz } from '../support/wire/ext-authz.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { type AuthProtocol, describeAuthService, type ServiceDecision } from './auth-service.ts';

type Decide = Parameters<AuthProtocol['start']>[1];

async function startOverHttp(servers: TestServers, decide: Decide) {
  const { port } = await startHttp(servers, {
    http2: true,
    async handler(req, res) {
      const chunks: Buffer[] = [];
      for await (const chunk of req) chunks.push(chunk as Buffer);
      const { method = '', url: path = '', headers } = req;
      const body = Buffer.concat(chunks).toString();
      const decision = await decide({ method, path, host: headers.host ?? '', headers, body });
      respond(res, decision);
    },
  });
  return { port, origin: `http://127.0.0.1:${port}` };
}

function respond(res: ServerResponse, decision: ServiceDecision): void {
  if (decision.kind === 'fail') res.writeHead(500).end();
  else if (decision.kind === 'deny') res.writeHead(decision.status, decision.headers).end(decision.body);
  else
    res
      .writeHead(200, { ...decision.headers, ...(decision.cookie !== undefined && { 'set-cookie': decision.cookie }) })
      .end();
}

const optionsOf = (headers: Readonly<Record<string, string>> = {}) =>
  Object.entries(headers).map(([key, value]) => ({ header: { key, value: Buffer.from(value, 'latin1').toString() } }));

function answerOf(decision: ServiceDecision): ForeignAnswer {
  if (decision.kind === 'fail') throw Object.assign(new Error('failed'), { code: status.INTERNAL });
  if (decision.kind === 'deny') {
    const { status: code, headers, body = '' } = decision;
    return { status: { code: 7 }, deniedResponse: { status: { code }, headers: optionsOf(headers), body } };
  }
  const cookies = decision.cookie === undefined ? {} : { 'set-cookie': decision.cookie };
  return {
    status: {},
    okResponse: { headers: optionsOf(decision.headers), responseHeadersToAdd: optionsOf(cookies) },
  };
}

async function startOverGrpc(servers: TestServers, decide: Decide) {
  return startExtAuthz(servers, async ({ request: { http } }: Described) => {
    const { method, path, host = '', headers = {}, body = '' } = http;
    return answerOf(await decide({ method, path, host, headers, body }));
  });
}

describeAuthService('HTTP/1.1', { record: {}, start: startOverHttp });
describeAuthService('HTTP/2', { record: { http2: true }, start: startOverHttp });
describeAuthService('gRPC', { record: { proto: 'grpc' }, start: startOverGrpc });
