// The endpoints of things that own flags: early access features, surveys and experiments are listed, created, read,
// changed and deleted alike. `services/manage` decides what a write does to the flags.

import Type, { type Static, type TSchema } from 'typebox'
import { type Item, type ResourceName, resources } from '#core/resources/resources.ts'
import type { Result } from '#core/result.ts'
import type { ResourceStore } from '#ports/state/resource-store.ts'
import type { PostHogFields } from '#wire/management/posthog-fields.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import { answer, noContent, refusal } from './answers.ts'
import type { Caller } from './authenticate.ts'
import { type EndpointDeps, type ManagementRoute, type ProjectCall, projectRoutes } from './endpoint.ts'
import { answerCountedList, encodeTogether } from './full-page.ts'
import { type ItemCall, itemRoutes, type ProjectItem, parseIdNumber } from './item-routes.ts'
import type { PageRequest } from './page.ts'
import { pageParams, type QuerySpec, type QueryValues } from './query-params.ts'

export interface ResourceEndpoints<
  N extends ResourceName,
  T extends Item<N>,
  Q extends QuerySpec,
  C extends TSchema,
  U extends TSchema,
> extends Omit<ProjectItem<T>, 'find'> {
  /** The resource, and the object of the scopes: `survey` in `survey:read` and `survey:write`. */
  readonly resource: N
  /** The path of the list, and the prefix of each operation's id. */
  readonly tag: string
  readonly summaries: Readonly<Record<'list' | 'create' | 'retrieve' | 'update' | 'destroy', string>>
  readonly schemas: { readonly item: TSchema; readonly create: C; readonly update: U }
  /** Fields of PostHog's object that the schemas lack. */
  readonly postHogFields: PostHogFields
  /** Query parameters of the list, except for paging. */
  readonly filters: Q
  readonly list: (
    projectId: number,
    query: PageRequest & QueryValues<Q>,
  ) => Promise<{ count: number; results: readonly T[] }>
  /** Encodes many items at once, so that their flags are read in one call. */
  readonly encode: (caller: Caller, projectId: number, items: readonly T[]) => Promise<readonly object[]>
  readonly create: (call: ProjectCall<QuerySpec, Static<C>>) => Promise<Result<T, WireError>>
  readonly update: (call: ItemCall<T, QuerySpec, Static<U>>) => Promise<Result<T, WireError>>
  /** Adds a PUT, which takes the body of a creation. */
  readonly replace?: {
    readonly summary: string
    readonly update: (call: ItemCall<T, QuerySpec, Static<C>>) => Promise<Result<T, WireError>>
  }
  readonly destroy: (call: ItemCall<T, QuerySpec, unknown>) => Promise<Result<unknown, WireError>>
  /** Actions that PostHog's tools POST on one item. */
  readonly actions?: readonly ItemAction<T>[]
}

interface ItemAction<T> {
  readonly name: string
  readonly summary: string
  readonly body: TSchema
  /** 201 when the action creates the answered item. */
  readonly status: 200 | 201
  // biome-ignore lint/suspicious/noExplicitAny: `itemAction` checks that the body has the type of `body`
  readonly run: (call: ItemCall<T, QuerySpec, any>) => Promise<Result<T, WireError>>
}

export function itemAction<T, S extends TSchema>(
  action: Pick<ItemAction<T>, 'name' | 'summary'> & {
    readonly body?: S
    readonly status?: 201
    readonly run: (call: ItemCall<T, QuerySpec, Static<S>>) => Promise<Result<T, WireError>>
  },
): ItemAction<T> {
  return { status: 200, body: Type.Object({}), ...action }
}

export function resourceRoutes<
  N extends ResourceName,
  T extends Item<N>,
  Q extends QuerySpec,
  C extends TSchema,
  U extends TSchema,
>(
  deps: EndpointDeps & { readonly management: Pick<ResourceStore, 'findResource'> },
  declared: ResourceEndpoints<N, T, Q, C, U>,
): ManagementRoute[] {
  const { resource, tag, summaries, schemas, postHogFields, replace, actions = [] } = declared
  const find = async (projectId: number, text: string) => {
    const id = resources[resource].fields.id.kind === 'integer' ? parseIdNumber(text) : text.toLowerCase()
    return id === null
      ? null
      : ((await deps.management.findResource(resource, projectId, id as Item<N>['id'])) as T | null)
  }
  const owner = { ...declared, find }
  const [read, write] = [`${resource}:read`, `${resource}:write`]
  const listPath = `/${tag}`
  const itemAnswer = async (status: number, { caller, project }: ProjectCall<QuerySpec, unknown>, item: T) =>
    answer(status, (await owner.encode(caller, project.id, [item]))[0])
  const answerWritten = async (status: number, call: ProjectCall<QuerySpec, unknown>, result: Result<T, WireError>) =>
    result.ok ? itemAnswer(status, call, result.value) : refusal(result.error)
  const query = { ...pageParams(), ...owner.filters }

  return [
    ...projectRoutes(deps, {
      ...{ method: 'GET', path: listPath, id: `${tag}_list`, tag, summary: summaries.list, scope: read },
      query,
      success: { status: 200, schema: countedPageSchema(schemas.item) },
      handle: call => {
        const { caller, project } = call
        const asked = call.query as PageRequest & QueryValues<Q>
        return answerCountedList(
          call,
          asked,
          slice => owner.list(project.id, { ...asked, ...slice }),
          encodeTogether(items => owner.encode(caller, project.id, items)),
        )
      },
    }),
    ...projectRoutes(deps, {
      ...{ method: 'POST', path: listPath, id: `${tag}_create`, tag, summary: summaries.create, scope: write },
      body: schemas.create,
      postHogFields,
      success: { status: 201, schema: schemas.item },
      handle: async call => answerWritten(201, call, await owner.create(call)),
    }),
    ...itemRoutes(deps, owner, {
      ...{ method: 'GET', path: '', id: `${tag}_retrieve`, tag, summary: summaries.retrieve, scope: read },
      success: { status: 200, schema: schemas.item },
      handle: call => itemAnswer(200, call, call.item),
    }),
    ...itemRoutes(deps, owner, {
      ...{ method: 'PATCH', path: '', id: `${tag}_partial_update`, tag, summary: summaries.update, scope: write },
      body: schemas.update,
      postHogFields,
      success: { status: 200, schema: schemas.item },
      handle: async call => answerWritten(200, call, await owner.update(call)),
    }),
    ...(replace === undefined
      ? []
      : itemRoutes(deps, owner, {
          ...{ method: 'PUT', path: '', id: `${tag}_update`, tag, summary: replace.summary, scope: write },
          body: schemas.create,
          postHogFields,
          success: { status: 200, schema: schemas.item },
          handle: async call => answerWritten(200, call, await replace.update(call)),
        })),
    ...actions.flatMap(({ name, summary, body, status, run }) =>
      itemRoutes(deps, owner, {
        ...{ method: 'POST', path: `/${name}`, id: `${tag}_${name}`, tag, summary, scope: write },
        body,
        success: { status, schema: schemas.item },
        handle: async call => answerWritten(status, call, await run(call)),
      }),
    ),
    ...itemRoutes(deps, owner, {
      ...{ method: 'DELETE', path: '', id: `${tag}_destroy`, tag, summary: summaries.destroy, scope: write },
      success: { status: 204 },
      handle: async call => {
        const deleted = await owner.destroy(call)
        return deleted.ok ? noContent : refusal(deleted.error)
      },
    }),
  ]
}
