// The stored version of a person-id override.

/**
 * Versions of a distinct id start again at 0 when its person is erased, while rows with the earlier versions may still be
 * stored. So each erasure in a project raises all later versions above every earlier version.
 */
export const versionsPerErasure = 2 ** 28
