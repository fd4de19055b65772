/** Requests while the objects of a cluster change. */
import assert from 'node:assert/strict';
import { describeWithKubernetes, startKubernetes } from '../support/kubernetes/api-server.ts';
import { sendRequests, startChangingService } from '../support/kubernetes/changing-service.ts';
import { resolvesPods } from '../support/kubernetes/pods.ts';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';

describeWithKubernetes(
  'frontdesk serve --kubernetes, while pods come and go and a Mapping changes every 100 ms',
  () => {
    const servers = testServers(after);

    for (const THREADS of ['1', '2'])
      it(`loses no request, with THREADS=${THREADS}`, async () => {
        const kubernetes = await startKubernetes(servers);
        await kubernetes.grant('frontdesk', {
          apiGroups: ['', 'discovery.k8s.io'],
          resources: ['services', 'endpointslices'],
          verbs: ['list', 'watch'],
        });
        const service = await startChangingService(kubernetes, 'orders');
        servers.later(service.close);
        const env = { KUBECONFIG: await kubernetes.kubeconfig(), THREADS, ...resolvesPods };
        const frontdesk = await startServer(['--kubernetes'], { env, cwd: '/' });
        servers.later(frontdesk.stop);
        const url = `${frontdesk.gatewayUrl}/orders/`;
        await eventually(async () => assert.deepEqual([...(await sendRequests(url, 1, 1)).keys()], ['200']), 20);
        const sending = sendRequests(url, 3000, 8);
        const changes = await service.changeUntil(sending);
        assert.deepEqual([...(await sending)], [['200', 3000]]);
        assert.ok(changes > 0);
      });
  },
);
