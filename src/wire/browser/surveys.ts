// Surveys as browsers and phones read them: the clients decide whether to show one, by the flags whose keys it names.
// Source: docs/wire/evaluation.md 7.5; docs/wire/clients.md 6.2, 13.

import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import { getOwnValue, type JsonValue } from '#core/json.ts'
import type { Survey } from '#core/resources/survey.ts'
import { isSurveyRunning } from '#core/surveys/survey-flags.ts'

export interface SurveyTexts {
  /** JSON list of all surveys that are not archived, including drafts and ended ones, as PostHog answers them. */
  readonly all: string
  /** JSON list of the surveys that may be shown now; null when it would be empty. */
  readonly running: string | null
}

/**
 * Leaves out a survey whose linked or targeting flag was deleted: clients that find no key would show it to everyone.
 */
export function encodeSurveys({ surveys, flags }: Pick<ProjectDefinitions, 'surveys' | 'flags'>): SurveyTexts {
  const keys = new Map(flags.map(flag => [flag.id, flag.key]))
  const isAbsent = (flagId: number | null) => flagId !== null && !keys.has(flagId)
  const shown = surveys.filter(survey => !isAbsent(survey.linkedFlagId) && !isAbsent(survey.targetingFlagId))
  const texts = shown.map(survey => JSON.stringify(encodeSurvey(survey, keys)))
  const running = texts.filter((_text, index) => isSurveyRunning(shown[index]!))
  return { all: `[${texts.join(',')}]`, running: running.length === 0 ? null : `[${running.join(',')}]` }
}

function encodeSurvey(survey: Survey, keys: ReadonlyMap<number, string>): object {
  const readMember = (name: string): JsonValue => getOwnValue(survey.content, name) ?? null
  const keyOf = (flagId: number | null) => (flagId === null ? null : (keys.get(flagId) ?? null))
  const flagKeys = {
    linked_flag_key: keyOf(survey.linkedFlagId),
    targeting_flag_key: keyOf(survey.targetingFlagId),
    internal_targeting_flag_key: keyOf(survey.internalTargetingFlagId),
  }
  return {
    id: survey.id,
    name: survey.name,
    description: readMember('description') ?? '',
    type: survey.type,
    ...flagKeys,
    feature_flag_keys: Object.entries(flagKeys).map(([key, value]) => ({ key, value })),
    questions: readMember('questions') ?? [],
    conditions: readMember('conditions'),
    appearance: readMember('appearance'),
    start_date: formatDate(survey.startDateMs),
    end_date: formatDate(survey.endDateMs),
    current_iteration: readMember('current_iteration'),
    current_iteration_start_date: readMember('current_iteration_start_date'),
    schedule: readMember('schedule') ?? 'once',
    enable_partial_responses: readMember('enable_partial_responses'),
    translations: readMember('translations'),
  }
}

function formatDate(epochMs: number | null): string | null {
  return epochMs === null ? null : new Date(epochMs).toISOString()
}
