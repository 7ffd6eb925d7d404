// Experiments as the private API reads and writes them. Every write is one transaction with that of the flag.

import type { Experiment } from '#core/experiments/experiment.ts'
import type { Result } from '#core/result.ts'
import type { FlagWrite, FlagWriteRefusal } from './flag-write.ts'
import type { Page, Written } from './written.ts'

export type NewExperiment = Omit<Experiment, 'id' | 'flagId' | 'flagIsOwn' | 'updatedAtMs'>
export type ExperimentPatch = Partial<
  Pick<Experiment, 'name' | 'content' | 'startDateMs' | 'endDateMs' | 'archived'>
> & { readonly updatedAtMs: number }

export interface ExperimentStore {
  /** The flag is the one that `flag` makes or changes: its own when it is made. */
  createExperiment(input: NewExperiment, flag: FlagWrite): Promise<Result<Written<Experiment>, FlagWriteRefusal>>
  /**
   * @param flag null: the flag stays as it is.
   * @param basedOn what the write was made from: `flag_changed` when something was written since. Not checked when absent.
   */
  updateExperiment(
    projectId: number,
    id: number,
    patch: ExperimentPatch,
    flag: FlagWrite | null,
    basedOn?: Experiment,
  ): Promise<Result<Written<Experiment>, FlagWriteRefusal | 'not_found'>>
  /** Takes the mark `has_experiment` off the flag when no other experiment has it. The flag itself stays. */
  deleteExperiment(
    projectId: number,
    id: number,
    change: { readonly nowMs: number; readonly changedBy: string | null },
  ): Promise<Result<Written<null>, FlagWriteRefusal | 'not_found'>>
  findExperiment(projectId: number, id: number): Promise<Experiment | null>
  /** Without deleted ones, newest first. */
  listExperiments(projectId: number, page: { limit: number; offset: number }): Promise<Page<Experiment>>
}
