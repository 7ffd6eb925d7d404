// What is stored as the version of a person-id override.

/**
 * Versions of a distinct id begin anew when its person is erased, and the rows of before may still be there. So each erasure
 * of the project lifts the versions of what follows above all that can have been before.
 */
export const versionsPerErasure = 2 ** 28
