// Projects that the worker skips in a stream for now, so that one slow project does not delay all others. A second
// cursor takes their records; its position is stored under a separate name (`deferredCursorOf`).

import type { LogStream } from '#core/events/log-stream.ts'

export interface Deferral {
  /** The second cursor's position: records of these projects before it are processed. */
  readonly offset: number
  /** Never empty. */
  readonly projects: readonly DeferredProject[]
}

export interface DeferredProject {
  readonly projectId: number
  /** From this offset on, the second cursor processes the project's records. */
  readonly fromOffset: number
}

/** @throws PortError from every method, like `ManagementStore`. */
export interface DeferredProjects {
  /** Null when no project of the stream is deferred. */
  findDeferral(stream: LogStream): Promise<Deferral | null>
  /**
   * Defers a project from `offset` on, in one transaction, if the stream's position is `offset` and this owner's. A
   * stream's first deferral moves its second cursor to `offset` and gives it to this owner. A project that is already
   * deferred stays as it is.
   * @returns false, with nothing changed, if the stream has another position or another owner.
   */
  deferProject(stream: LogStream, ownerId: string, projectId: number, offset: number): Promise<boolean>
  /**
   * Ends all deferrals of a stream, in one transaction, if both cursors are at `offset` and belong to this owner.
   * @returns false, with nothing changed, if they are not or do not.
   */
  releaseProjects(stream: LogStream, ownerId: string, offset: number): Promise<boolean>
}
