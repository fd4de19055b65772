/** The bounds of delays. */

/** The longest delay of a Node timer. With a longer one, such as `Infinity`, it would fire immediately. */
export const delayMsMax = 2_147_483_647;
