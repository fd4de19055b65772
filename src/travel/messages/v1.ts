/** Version 1 of the API: the content of a message is its subject. The code that versions share is in messages.ts. */
import { z } from 'zod';
import type { Field } from '#query';
import type { MessageRow } from '../storage/schema.ts';

export const v1 = Object.freeze({
  version: '1',
  message: { content: { column: 'subject', schema: z.string().meta({ examples: ['Your room in Berlin'] }) } },
} satisfies { version: string; message: Record<string, Field<MessageRow>> });
