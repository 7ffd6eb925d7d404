// The worker's reported progress, for counting what is still waiting.

export interface ProcessedUntil {
  /** Everything appended before this time (epoch ms) is processed, except events of deferred projects. */
  readonly appendedBeforeMs: number
  /** The same time for the events of deferred projects; null if no project is deferred. */
  readonly deferred: { readonly projectIds: readonly number[]; readonly appendedBeforeMs: number } | null
}

/** Everything of the project that was appended before this time (epoch ms) is processed. */
export function findProcessedUntilMs({ appendedBeforeMs, deferred }: ProcessedUntil, projectId: number): number {
  return deferred?.projectIds.includes(projectId) === true ? deferred.appendedBeforeMs : appendedBeforeMs
}
