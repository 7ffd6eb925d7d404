// Which experiments of a project a list shows, and in which order. Source: PostHog's list of experiments.

import { type Author, isSameAuthor } from '../author.ts'
import type { Experiment } from '../resources/experiment.ts'

export const experimentStatuses = ['draft', 'running', 'paused', 'stopped'] as const
export type ExperimentStatus = (typeof experimentStatuses)[number]

export const experimentOrders = [
  'name',
  'created_at',
  'updated_at',
  'start_date',
  'end_date',
  'duration',
  'status',
] as const

/** All filters must match. */
export interface ExperimentFilter {
  /** Part of a name, in any case. */
  readonly search?: string
  readonly status?: ExperimentStatus
  readonly archived: boolean
  readonly flagId?: number
  /** Matches experiments made by one of these authors. */
  readonly createdBy?: readonly Author[]
  /** The order of the list; newest first if absent. */
  readonly order?: { readonly by: (typeof experimentOrders)[number]; readonly isDescending: boolean }
}

/** An experiment without the display-only content, and whether its flag is active. */
export type ListedExperiment = Omit<Experiment, 'content'> & { readonly flagIsActive: boolean }

/** The status of an experiment: an experiment that runs while its flag is switched off is paused. */
export function statusOfExperiment(
  { startDateMs, endDateMs }: Pick<Experiment, 'startDateMs' | 'endDateMs'>,
  flagIsActive: boolean,
): ExperimentStatus {
  if (startDateMs === null) return 'draft'
  if (endDateMs !== null) return 'stopped'
  return flagIsActive ? 'running' : 'paused'
}

/** @param experiments of one project. @param nowMs used as the end of a running experiment, to find its duration. */
export function filterExperiments<T extends ListedExperiment>(
  experiments: readonly T[],
  filter: ExperimentFilter,
  nowMs: number,
): T[] {
  const search = filter.search?.toLowerCase() ?? ''
  const chosen = experiments.filter(
    experiment =>
      experiment.archived === filter.archived &&
      experiment.name.toLowerCase().includes(search) &&
      (filter.flagId === undefined || experiment.flagId === filter.flagId) &&
      (filter.status === undefined || statusOfExperiment(experiment, experiment.flagIsActive) === filter.status) &&
      (filter.createdBy === undefined || filter.createdBy.some(author => isSameAuthor(author, experiment.createdBy))),
  )
  const { by, isDescending } = filter.order ?? { by: 'created_at', isDescending: true }
  const direction = isDescending ? -1 : 1
  const rank = (experiment: ListedExperiment) => getSortKey(experiment, by, nowMs)
  return chosen.sort((a, b) => direction * compare(rank(a), rank(b)) || b.id - a.id)
}

function getSortKey(
  experiment: ListedExperiment,
  by: (typeof experimentOrders)[number],
  nowMs: number,
): string | number {
  const { startDateMs, endDateMs } = experiment
  switch (by) {
    case 'name':
      return experiment.name.toLowerCase()
    case 'created_at':
      return experiment.createdAtMs
    case 'updated_at':
      return experiment.updatedAtMs
    case 'start_date':
      return startDateMs ?? Number.NEGATIVE_INFINITY
    case 'end_date':
      return endDateMs ?? Number.NEGATIVE_INFINITY
    case 'duration':
      return startDateMs === null ? -1 : (endDateMs ?? nowMs) - startDateMs
    case 'status':
      return experimentStatuses.indexOf(statusOfExperiment(experiment, experiment.flagIsActive))
    default:
      return by satisfies never
  }
}

function compare(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0
}
