// Computes the version with which a person-id override is stored.

/**
 * When a person is erased, the versions of its distinct ids start again at 0, while rows with earlier, higher versions may
 * still be stored. So each erasure in a project adds this number to all later versions, which puts them above every earlier
 * version.
 */
export const versionsPerErasure = 2 ** 28
