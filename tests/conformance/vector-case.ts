// The result of a form for each vector of a file: a case to run, which returns the differences of the service.

import type { Instances } from './instance.ts'

export interface VectorCase {
  readonly id: string
  /** Runs the vector and returns its differences from the service; none when it passes. May throw instead. */
  run(instances: Instances): Promise<readonly string[]> | readonly string[]
}

/** What the clock says where a vector of an evaluation leaves the time open. */
export const anyTime = '2026-01-15T12:00:00Z'
