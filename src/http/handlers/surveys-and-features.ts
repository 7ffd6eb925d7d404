// The public lists for pages: `/api/surveys/`, `/api/early_access_features/`, and two that are always empty. Answers are
// encoded at the first request, once per revision of the project. Source: docs/wire/evaluation.md 7.4, 7.5.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import { clientConfigOf } from '#wire/browser/client-config.ts'
import {
  type EarlyAccessText,
  encodeEarlyAccessAnswer,
  encodeEarlyAccessFeatures,
} from '#wire/browser/early-access-features.ts'
import { missingProjectToken, readProjectToken, unknownProjectToken } from '#wire/capture/project-token.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'

export interface SurveysAndFeaturesOptions {
  readonly findProject: (token: string) => CompiledProject | null
}

export function surveysAndFeaturesRoutes({ findProject }: SurveysAndFeaturesOptions): Route[] {
  const featuresOf = new WeakMap<CompiledProject, EarlyAccessText[]>()
  const common = { access: 'project_key', group: 'browser', bodyLimitBytes: 1_024 } as const
  return (['GET', 'HEAD'] as const).flatMap(method => [
    { ...common, method, path: '/api/surveys', handler: withProject(encodeSurveysAnswer) },
    { ...common, method, path: '/api/early_access_features', handler: withProject(encodeFeaturesAnswer) },
    { ...common, method, path: '/api/web_experiments', handler: withProject(() => '{"experiments":[]}') },
    { ...common, method, path: '/api/product_tours', handler: withProject(() => '{"product_tours":[]}') },
  ])

  function withProject(answer: (project: CompiledProject, request: FastifyRequest) => string): Route['handler'] {
    return (request: FastifyRequest, reply: FastifyReply) => {
      const token = readProjectToken(request.query as Parameters<typeof readProjectToken>[0])
      if (token === null) return sendError(reply, missingProjectToken)
      const project = findProject(token)
      if (project === null) return sendError(reply, unknownProjectToken)
      sendJson(reply, 200, answer(project, request))
    }
  }

  function encodeSurveysAnswer(project: CompiledProject): string {
    const { allSurveys, surveyConfig } = clientConfigOf(project)
    return `{"surveys":${allSurveys},"survey_config":${surveyConfig}}`
  }

  function encodeFeaturesAnswer(project: CompiledProject, request: FastifyRequest): string {
    let features = featuresOf.get(project)
    if (features === undefined) {
      features = encodeEarlyAccessFeatures(project.definitions)
      featuresOf.set(project, features)
    }
    const { stage } = request.query as { readonly stage?: string | string[] }
    return encodeEarlyAccessAnswer(features, stage)
  }
}
