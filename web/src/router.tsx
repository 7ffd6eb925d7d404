// Every address below `/ui/` and the screen that it shows. A screen is loaded when its address is first opened.

import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router'
import { ApiError } from './api/client.ts'
import { noteSession } from './api/connection.ts'
import { queries } from './api/queries.ts'
import { sessionQuery } from './api/session.ts'
import { Home } from './screens/home/home.tsx'
import { Failed } from './shell/failed.tsx'
import { loadScreen } from './shell/load-screen.ts'
import { NotFound } from './shell/not-found.tsx'
import { Shell } from './shell/shell.tsx'

const root = createRootRouteWithContext<Record<never, never>>()({
  component: Outlet,
  errorComponent: Failed,
  notFoundComponent: NotFound,
})

/** `next`: where to go on after signing in, below `/ui`. */
interface SignInSearch {
  readonly next?: string
}

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: ({ next }: Record<string, unknown>): SignInSearch =>
    typeof next === 'string' && next.startsWith('/') && !next.startsWith('//') ? { next } : {},
  component: loadScreen(() => import('./screens/sign-in/sign-in.tsx'), 'SignIn'),
})

const welcome = createRoute({
  getParentRoute: () => root,
  path: '/welcome',
  component: loadScreen(() => import('./screens/welcome/welcome.tsx'), 'Welcome'),
})

/** All screens for people who are signed in. */
const app = createRoute({
  getParentRoute: () => root,
  id: 'app',
  beforeLoad: async ({ location }) => {
    try {
      return { session: await queries.ensureQueryData(sessionQuery) }
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        noteSession()
        throw redirect({ to: '/sign-in', search: { next: location.href } })
      }
      throw error
    }
  },
  component: Shell,
})

const start = createRoute({
  getParentRoute: () => app,
  path: '/',
  beforeLoad: ({ context }) => {
    const [first] = context.session.projects
    if (first !== undefined) throw redirect({ to: '/p/$projectId', params: { projectId: String(first.id) } })
  },
  component: loadScreen(() => import('./screens/home/no-project.tsx'), 'NoProject'),
})

const project = createRoute({ getParentRoute: () => app, path: '/p/$projectId', component: Outlet })

const home = createRoute({ getParentRoute: () => project, path: '/', component: Home })

const me = createRoute({
  getParentRoute: () => app,
  path: '/me',
  component: loadScreen(() => import('./screens/me/me.tsx'), 'Me'),
})

const users = createRoute({
  getParentRoute: () => app,
  path: '/users',
  component: loadScreen(() => import('./screens/users/users.tsx'), 'Users'),
})

/** Absent from what is delivered: the build then finds no import of the screen. */
const workbench = WITH_WORKBENCH
  ? [
      createRoute({
        getParentRoute: () => root,
        path: '/workbench',
        component: lazyRouteComponent(() => import('./screens/workbench/workbench.tsx'), 'Workbench'),
      }),
    ]
  : []

export const router = createRouter({
  routeTree: root.addChildren([
    ...workbench,
    signIn,
    welcome,
    app.addChildren([start, project.addChildren([home]), me, users]),
  ]),
  basepath: '/ui',
  context: {},
  defaultPreload: 'intent',
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
