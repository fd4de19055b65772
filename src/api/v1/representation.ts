/** Version 1 shows a message by its subject line. */
import { z } from 'zod';
import type { Field } from '#query';
import type { MessageRow } from '#storage';

export const v1 = Object.freeze({
  message: { content: { column: 'subject', schema: z.string() } },
} satisfies { message: Record<string, Field<MessageRow>> });
