/** Never oversold: what is left, what is told when nothing is, and many who want the last one. */
import assert from 'node:assert/strict';
import type { BookingClient } from './booking-client.ts';
import { callAsDemo } from './desk.ts';

export function soldOutCases(client: BookingClient): void {
  const { desk, kind } = client;
  const { prefix, thing, ends } = kind;

  describe(`what is left at ${prefix}`, () => {
    it('is sold as often as there is of it, and not once more', async () => {
      const offer = await client.scarcest();
      const stay = client.nextStay();
      await client.bookAll(offer, stay);
      assert.equal(await client.left(offer, stay), 0);
      const { body } = await client.post({ ...offer.request, ...stay }).expect(409);
      assert.equal(body.message, '409: Conflict');
      assert.ok(body.detail.length > 0);
    });

    it('is sold out for every stay that meets one that is, and for no other', async () => {
      const offer = await client.scarcest();
      const stay = client.nextStay(6);
      const first = Math.round((Date.parse(stay[ends[0]] ?? '') - Date.now()) / 86_400_000);
      const within = (from: number, length: number) => ({ ...offer.request, ...kind.stay(first + from, length) });
      for (let unit = 0; unit < offer.units; unit += 1) await client.book(within(2, 2));
      for (const [from, length] of [
        [0, 6],
        [0, 3],
        [1, 2],
        [2, 1],
        [3, 1],
        [3, 3],
      ] as const) {
        await client.post(within(from, length)).expect(409);
      }
      await client.book(within(0, 2));
      await client.book(within(4, 2));
    });

    it('is told with 409 and up to five alternatives, each of which can be booked', async () => {
      const offer = await client.scarcest();
      const stay = client.nextStay();
      await client.bookAll(offer, stay);
      const wanted: Record<string, unknown> = { ...offer.request, ...stay };
      const { body } = await client.post(wanted).expect(409);
      assert.ok(body.alternatives.length >= 1 && body.alternatives.length <= 5);
      for (const alternative of body.alternatives) {
        const asked = Object.keys(wanted).map((name) => [name, alternative[name] ?? wanted[name]]);
        const booking = await client.book(Object.fromEntries(asked));
        await client.change(booking, { status: 'cancelled' }, '*').expect(200);
      }
    });

    it('is what the list shows for a stay: things that are free, with how many and for how much', async () => {
      const offer = await client.scarcest();
      const stay = client.nextStay();
      const idsFor = async (of: object) => {
        const path = `${prefix}/?limit=100&${new URLSearchParams({ ...of })}`;
        const { body } = await callAsDemo(desk, path).expect(200);
        for (const item of body.items) assert.ok(JSON.stringify(item.availability).includes('"amount"'));
        return body.items.map(({ id }: { id: string }) => id);
      };
      const id = offer.request[thing];
      assert.ok((await idsFor(stay)).includes(id));
      const { body } = await callAsDemo(desk, `${prefix}/${id}`).expect(200);
      for (const one of kind.offersOf(body)) await client.bookAll(one, stay);
      assert.ok(!(await idsFor(stay)).includes(id));
      assert.ok((await idsFor(client.nextStay())).includes(id));
    });

    it('goes to one of 64 who want the last at the same moment', async () => {
      const offer = await client.scarcest();
      const stay = client.nextStay(2);
      await client.bookAll({ ...offer, units: offer.units - 1 }, stay);
      const race = Array.from({ length: 64 }, async () => client.post({ ...offer.request, ...stay }));
      const answers = await Promise.all(race);
      const statuses = answers.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [201, ...Array.from({ length: 63 }, () => 409)]);
      for (const { status, body } of answers) if (status === 409) assert.ok(body.alternatives.length > 0);
      assert.equal(await client.left(offer, stay), 0);
    });
  });
}
