/** The view that the tests in this folder use, with unchanged, renamed and computed columns. */
import { z } from 'zod';
import { createView, type Scalar, type View } from '#query';

export interface Hotel {
  readonly id: number;
  readonly name: string;
  readonly town: string;
  readonly stars: number;
  readonly open: boolean;
}

export const baseUrl = 'https://example.test/v1/';

export function createHotelView(): View<Hotel> {
  return createView<Hotel>({
    key: 'id',
    fields: {
      id: { column: 'id', schema: z.int32() },
      name: { column: 'name', schema: z.string().max(50) },
      city: { column: 'town', schema: z.string() },
      open: { column: 'open', schema: z.boolean() },
      code: {
        column: 'stars',
        schema: z.string().regex(/^s\d$/),
        toPublic: (stars): Scalar => `s${stars}`,
        fromPublic: (text) => (text === 's9' ? undefined : Number(text.slice(1))),
      },
    },
  });
}

export const hotel: Hotel = { id: 7, name: 'Astoria', town: 'Bern', stars: 4, open: true };
