// What is a person's own: name, password, sessions, looks.

import { useMutation, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import type { Operations } from '../../api/schema.ts'
import { type SignedIn, sessionQuery } from '../../api/session.ts'
import { Badge } from '../../components/controls/badge.tsx'
import { Button } from '../../components/controls/button.tsx'
import { DensitySwitch, ThemeSwitch } from '../../components/controls/preference-switches.tsx'
import { Form } from '../../components/fields/form.tsx'
import { splitError } from '../../components/fields/split-error.ts'
import { TextField } from '../../components/fields/text-field.tsx'
import { useFocusOfRows } from '../../components/focus-of-rows.ts'
import { showToast } from '../../components/overlays/toasts.tsx'
import { Skeleton } from '../../components/states/skeleton.tsx'
import { ErrorState, Refusal } from '../../components/states/states.tsx'
import { Outside } from '../../components/text/outside.tsx'
import { formatOutsideText } from '../../components/text/outside-text.ts'
import { Time } from '../../components/text/time.tsx'
import { Page } from '../../shell/page.tsx'
import { describeBrowser } from './describe-browser.ts'
import css from './me.module.css'

export function Me() {
  const { data: session } = useSuspenseQuery(sessionQuery)
  return (
    <Page title="Your account" isForm>
      <Profile user={session.user} />
      <Password user={session.user} />
      <Sessions />
      <section className={css.part}>
        <h2>Looks</h2>
        <ThemeSwitch />
        <DensitySwitch />
      </section>
    </Page>
  )
}

/** Shows a changed user wherever the session is shown. */
function keepUser(user: SignedIn['user']): void {
  queries.setQueryData(sessionQuery.queryKey, session => session && { ...session, user })
}

function Profile({ user }: { user: SignedIn['user'] }) {
  const [name, setName] = useState(user.name)
  const save = useMutation({
    mutationFn: () => call('PATCH /api/session/user/', { body: { name } }),
    onSuccess: changed => {
      keepUser(changed)
      showToast({ text: 'Your name is changed.' })
    },
  })
  const state = { isBusy: save.isPending, disabledReason: name === user.name ? 'Nothing is changed' : null }
  const { errors, rest } = splitError(save.error, ['name'])
  return (
    <Form className={css.part} onSubmit={() => save.mutate()} {...state}>
      <h2>Profile</h2>
      <p>
        <Outside text={user.email ?? 'No e-mail address'} /> <Badge>{user.role}</Badge>
      </p>
      <TextField label="Name" name="name" autoComplete="name" value={name} onChange={setName} error={errors.name} />
      <Refusal error={rest} />
      <Button type="submit" {...state}>
        Save the name
      </Button>
    </Form>
  )
}

function Password({ user }: { user: SignedIn['user'] }) {
  const [email, setEmail] = useState(user.email ?? '')
  const [current, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  const save = useMutation({
    mutationFn: () =>
      call('PATCH /api/session/user/', {
        body: {
          password,
          ...(user.has_password && { current_password: current }),
          ...(user.email === null && { email }),
        },
      }),
    onSuccess: changed => {
      keepUser(changed)
      setCurrent('')
      setPassword('')
      queries.invalidateQueries({ queryKey: ['own-sessions'] })
      showToast({ text: 'Your password is changed. All other sessions have ended.' })
    },
  })
  const isComplete = password !== '' && (current !== '' || !user.has_password) && email !== ''
  const state = { isBusy: save.isPending, disabledReason: isComplete ? null : 'Fill in the fields first' }
  const { errors, rest } = splitError(save.error, ['email', 'current_password', 'password'])
  return (
    <Form className={css.part} onSubmit={() => save.mutate()} {...state}>
      <h2>{user.has_password ? 'Change the password' : 'Choose a password'}</h2>
      {user.email === null ? (
        <TextField
          label="E-mail"
          type="email"
          autoComplete="username"
          value={email}
          onChange={setEmail}
          error={errors.email}
        />
      ) : (
        // Password managers store the password for this name.
        <input
          className="visually-hidden"
          tabIndex={-1}
          aria-hidden
          autoComplete="username"
          value={user.email}
          readOnly
        />
      )}
      {user.has_password && (
        <TextField
          label="Present password"
          type="password"
          autoComplete="current-password"
          value={current}
          onChange={setCurrent}
          error={errors.current_password}
        />
      )}
      <TextField
        label="New password"
        type="password"
        autoComplete="new-password"
        value={password}
        onChange={setPassword}
        error={errors.password}
        help="12 characters or more. A sentence is fine."
      />
      <Refusal error={rest} />
      <Button type="submit" {...state}>
        {user.has_password ? 'Change the password' : 'Set the password'}
      </Button>
    </Form>
  )
}

type Session = Operations['GET /api/users/@me/sessions/']['answer']['results'][number]

function Sessions() {
  const sessions = useQuery({
    queryKey: ['own-sessions'],
    queryFn: ({ signal }) => call('GET /api/users/@me/sessions/', { signal }),
  })
  const rows = sessions.data?.results ?? []
  const focusOfRows = useFocusOfRows(rows.map(({ id }) => id))
  const end = useMutation({
    mutationFn: (session: Session | null) =>
      session === null
        ? call('DELETE /api/users/@me/sessions/')
        : call('DELETE /api/users/@me/sessions/{session_id}/', { path: { session_id: session.id } }),
    onSuccess: (_, session) => {
      queries.invalidateQueries({ queryKey: ['own-sessions'] })
      const ended = session === null ? 'All other sessions have' : `${describeBrowser(session.user_agent)} has`
      showToast({ text: `${ended} ended.` })
    },
  })
  if (sessions.isPending) return <Skeleton what="your sessions" rowCount={3} />
  if (sessions.data === undefined)
    return <ErrorState title="Your sessions could not be loaded" error={sessions.error} onRetry={sessions.refetch} />
  return (
    <section className={css.part}>
      <h2 tabIndex={-1}>Where you are signed in</h2>
      <ul className={css.sessions} {...focusOfRows}>
        {rows.map(session => (
          <li key={session.id}>
            <div>
              <span title={formatOutsideText(session.user_agent, { charsMax: 500 })}>
                {describeBrowser(session.user_agent)}
              </span>
              <p>
                <Outside text={session.address} isCode />, seen <Time at={session.last_seen_at} />
              </p>
            </div>
            {session.is_current ? (
              <Badge kind="on">This browser</Badge>
            ) : (
              <Button isBusy={end.isPending && end.variables === session} onPress={() => end.mutate(session)}>
                End {describeBrowser(session.user_agent)}
              </Button>
            )}
          </li>
        ))}
      </ul>
      <Refusal error={end.error} />
      {rows.length > 1 && <Button onPress={() => end.mutate(null)}>End all others</Button>}
    </section>
  )
}
