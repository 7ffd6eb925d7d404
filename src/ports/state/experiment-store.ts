// Experiments as the private API reads and writes them. Every write shares its transaction with the flag's.

import type { Change } from '#core/author.ts'
import type { ExperimentFilter } from '#core/experiments/choose-experiments.ts'
import type { Experiment } from '#core/experiments/experiment.ts'
import type { Result } from '#core/result.ts'
import type { LinkedWrite } from './definition-links.ts'
import type { FlagWrite, FlagWriteRefusal } from './flag-write.ts'
import type { Page, Written } from './written.ts'

export type NewExperiment = Omit<
  Experiment,
  'id' | 'flagId' | 'flagIsOwn' | 'createdAtMs' | 'updatedAtMs' | 'createdBy'
>
export type ExperimentPatch = Partial<Pick<Experiment, 'name' | 'content' | 'startDateMs' | 'endDateMs' | 'archived'>>

export interface ExperimentQuery extends ExperimentFilter {
  readonly limit: number
  readonly offset: number
  /** For the order by duration. */
  readonly nowMs: number
}

export interface ExperimentStore {
  /** The experiment's flag is the one that `flag` creates or changes; a created flag is the experiment's own. */
  createExperiment(
    input: NewExperiment,
    flag: FlagWrite,
    change: Change,
  ): Promise<Result<Written<Experiment>, FlagWriteRefusal>>
  /**
   * @param flag null leaves the flag unchanged.
   * @param basedOn what the caller read: refused as `flag_changed` if it was written since. Not compared when absent.
   */
  updateExperiment(
    projectId: number,
    id: number,
    patch: ExperimentPatch,
    flag: FlagWrite | null,
    change: Change,
    basedOn?: Experiment,
  ): Promise<Result<Written<Experiment>, FlagWriteRefusal | 'not_found'>>
  /** The flag stays; it loses its mark `has_experiment` if no other experiment uses it. */
  deleteExperiment(
    projectId: number,
    id: number,
    change: Change,
    options: LinkedWrite,
  ): Promise<Result<Written<null>, FlagWriteRefusal | 'not_found'>>
  findExperiment(projectId: number, id: number): Promise<Experiment | null>
  /** Without deleted experiments. */
  listExperiments(projectId: number, query: ExperimentQuery): Promise<Page<Experiment>>
}
