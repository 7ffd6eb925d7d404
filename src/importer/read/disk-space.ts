// How the stages of an import leave space on the disk of their folder: who runs them says when there is some.

/** Called before every few MiB that are written. Ends once the disk has space for them. */
export type WaitForSpace = () => Promise<void>

/** For whoever runs a stage on a disk that may be filled. */
export const unlimitedSpace: WaitForSpace = async () => {}

/**
 * @param bytes that are about to be written.
 * @returns why they should not be, for people; null when there is space.
 * @throws JobStopped when there will never be.
 */
export type FindSpaceProblem = (bytes: number) => string | null
