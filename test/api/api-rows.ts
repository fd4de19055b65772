/** Two accounts and three messages. */
export const apiRows = Object.freeze({
  accounts: [
    { id: 'ann', name: 'Ann' },
    { id: 'bob', name: 'Bob' },
  ],
  messages: [
    { id: 1, account_id: 'ann', subject: 'Hello', body: 'Hello, Ann. It rains.' },
    { id: 2, account_id: 'ann', subject: 'Again', body: 'It still rains.' },
    { id: 3, account_id: 'bob', subject: 'Hello', body: 'Hello, Bob.' },
  ],
});
