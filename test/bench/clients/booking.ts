/** The booking from the demo data that every server responds with. */

export const booking = {
  id: '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01',
  hotel_id: 'bdd640fb-0667-4ad1-9c80-317fa3b1799d',
  status: 'confirmed',
} as const;
