/** The states of a booking. */
import { z } from 'zod';

export const bookingStatus = z.enum(['pending', 'confirmed', 'cancelled']);
