// Surveys as the private API reads and writes them. Every write is one transaction with those of the flags made for it.

import type { Result } from '#core/result.ts'
import type { Survey } from '#core/surveys/survey.ts'
import type { FlagWrite, FlagWriteRefusal } from './flag-write.ts'
import type { Page, Written } from './written.ts'

/** Without flags that are made for it: those come from the writes beside. */
export type NewSurvey = Omit<Survey, 'targetingFlagId' | 'internalTargetingFlagId'>
export type SurveyPatch = Partial<Omit<Survey, 'id' | 'projectId' | 'createdAtMs' | 'createdBy' | 'updatedAtMs'>> & {
  readonly updatedAtMs: number
}

/** A flag that a write makes becomes the survey's; null or absent: that flag stays as it is. */
export interface SurveyFlagWrites {
  readonly targeting?: FlagWrite | null
  readonly internal?: FlagWrite | null
}

export interface SurveyStore {
  createSurvey(input: NewSurvey, flags: SurveyFlagWrites): Promise<Result<Written<Survey>, FlagWriteRefusal>>
  /** @param basedOn what the write was made from: `flag_changed` when something was written since. Not checked when absent. */
  updateSurvey(
    projectId: number,
    id: string,
    patch: SurveyPatch,
    flags: SurveyFlagWrites,
    basedOn?: Survey,
  ): Promise<Result<Written<Survey>, FlagWriteRefusal | 'not_found'>>
  deleteSurvey(
    projectId: number,
    id: string,
    flags: SurveyFlagWrites,
    basedOn?: Survey,
  ): Promise<Result<Written<null>, FlagWriteRefusal | 'not_found'>>
  findSurvey(projectId: number, id: string): Promise<Survey | null>
  /** Newest first; archived ones are among them unless `archived` says which. */
  listSurveys(
    projectId: number,
    query: { limit: number; offset: number; search?: string; archived?: boolean },
  ): Promise<Page<Survey>>
}
