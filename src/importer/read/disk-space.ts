// How the stages of an import avoid filling the disk: their caller passes these functions.

/** Called before every few MiB are written. Resolves when the disk has space for them. */
export type WaitForSpace = () => Promise<void>

/** Never waits: for stages that may fill the disk. */
export const unlimitedSpace: WaitForSpace = async () => {}

/**
 * @param bytes how many bytes are about to be written. @returns why they must not be written now, as a message for the
 * user; null when there is space.
 * @throws JobStopped when there will never be space.
 */
export type FindSpaceProblem = (bytes: number) => string | null
