/** Version 2 of the API: the content of a message is its text, and its creation time is shown. See messages.ts. */
import { z } from 'zod';
import { type Field, timeSchema } from '#query';
import type { MessageRow } from '../storage/schema.ts';

export const v2 = Object.freeze({
  version: '2',
  message: {
    content: {
      column: 'body',
      schema: z.string().meta({ examples: ['The Lindenhof expects you. Reception is open until midnight.'] }),
    },
    created_at: { column: 'created_at', schema: timeSchema },
  },
} satisfies { version: string; message: Record<string, Field<MessageRow>> });
