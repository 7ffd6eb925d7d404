// Surveys as the private API reads and writes them. Every write shares its transaction with those of the survey's flags.

import type { Author, Change } from '#core/author.ts'
import type { Result } from '#core/result.ts'
import type { Survey, SurveyStatus } from '#core/surveys/survey.ts'
import type { FlagWrite, FlagWriteRefusal } from './flag-write.ts'
import type { Page, Written } from './written.ts'

/** Without the survey's flags, which `SurveyFlagWrites` creates. */
export type NewSurvey = Omit<
  Survey,
  'targetingFlagId' | 'internalTargetingFlagId' | 'createdAtMs' | 'updatedAtMs' | 'createdBy'
>
export type SurveyPatch = Partial<Omit<Survey, 'id' | 'projectId' | 'createdAtMs' | 'createdBy' | 'updatedAtMs'>>

/** A flag created here belongs to the survey. Null or absent leaves that flag unchanged. */
export interface SurveyFlagWrites {
  readonly targeting?: FlagWrite | null
  readonly internal?: FlagWrite | null
}

/** All filters must match. */
export interface SurveyQuery {
  readonly limit: number
  readonly offset: number
  /** Part of a name or a description, in any case. */
  readonly search?: string
  readonly archived?: boolean
  readonly status?: SurveyStatus
  readonly type?: string
  readonly ids?: readonly string[]
  /** The survey was made by one of them. */
  readonly createdBy?: readonly Author[]
}

export interface SurveyStore {
  createSurvey(
    input: NewSurvey,
    flags: SurveyFlagWrites,
    change: Change,
  ): Promise<Result<Written<Survey>, FlagWriteRefusal>>
  /** @param basedOn what the caller read: `flag_changed` if it was written since. Not compared when absent. */
  updateSurvey(
    projectId: number,
    id: string,
    patch: SurveyPatch,
    flags: SurveyFlagWrites,
    change: Change,
    basedOn?: Survey,
  ): Promise<Result<Written<Survey>, FlagWriteRefusal | 'not_found'>>
  deleteSurvey(
    projectId: number,
    id: string,
    flags: SurveyFlagWrites,
    change: Change,
    basedOn?: Survey,
  ): Promise<Result<Written<null>, FlagWriteRefusal | 'not_found'>>
  findSurvey(projectId: number, id: string): Promise<Survey | null>
  /** Newest first. */
  listSurveys(projectId: number, query: SurveyQuery): Promise<Page<Survey>>
}
