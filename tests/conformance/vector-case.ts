// What a form makes of each vector of a file: something that can be run and says how the service differs.

import type { Instances } from './instance.ts'

export interface VectorCase {
  readonly id: string
  /** Differences between what the vector says and what the service does; none when it passes. May throw instead. */
  run(instances: Instances): Promise<readonly string[]> | readonly string[]
}
