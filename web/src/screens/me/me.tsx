// What is a person's own: name, password, sessions, looks.

import { useMutation, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { type SignedIn, sessionQuery } from '../../api/session.ts'
import { Badge } from '../../components/controls/badge.tsx'
import { Button } from '../../components/controls/button.tsx'
import { TextField } from '../../components/fields/text-field.tsx'
import { showToast } from '../../components/overlays/toasts.tsx'
import { Skeleton } from '../../components/states/skeleton.tsx'
import { Outside } from '../../components/text/outside.tsx'
import { Time } from '../../components/text/time.tsx'
import { Page } from '../../shell/page.tsx'
import { Refusal } from '../sign-in/refusal.tsx'
import { describeBrowser } from './describe-browser.ts'
import css from './me.module.css'

export function Me() {
  const { data: session } = useSuspenseQuery(sessionQuery)
  return (
    <Page title="Your account" isForm>
      <Profile user={session.user} />
      <Password user={session.user} />
      <Sessions />
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
  return (
    <form
      className={css.part}
      onSubmit={event => {
        event.preventDefault()
        save.mutate()
      }}
    >
      <h2>Profile</h2>
      <p>
        <Outside text={user.email ?? 'No e-mail address'} /> <Badge>{user.role}</Badge>
      </p>
      <TextField label="Name" name="name" autoComplete="name" value={name} onChange={setName} />
      <Refusal error={save.error} />
      <Button type="submit" isBusy={save.isPending} disabledReason={name === user.name ? 'Nothing is changed' : null}>
        Save the name
      </Button>
    </form>
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
  return (
    <form
      className={css.part}
      onSubmit={event => {
        event.preventDefault()
        save.mutate()
      }}
    >
      <h2>{user.has_password ? 'Change the password' : 'Choose a password'}</h2>
      {user.email === null ? (
        <TextField label="E-mail" type="email" autoComplete="username" value={email} onChange={setEmail} />
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
        />
      )}
      <TextField
        label="New password"
        type="password"
        autoComplete="new-password"
        value={password}
        onChange={setPassword}
        help="12 characters or more. A sentence is fine."
      />
      <Refusal error={save.error} />
      <Button type="submit" isBusy={save.isPending} disabledReason={isComplete ? null : 'Fill in the fields first'}>
        {user.has_password ? 'Change the password' : 'Set the password'}
      </Button>
    </form>
  )
}

function Sessions() {
  const sessions = useQuery({
    queryKey: ['own-sessions'],
    queryFn: ({ signal }) => call('GET /api/users/@me/sessions/', { signal }),
  })
  const end = useMutation({
    mutationFn: (id: string | null) =>
      id === null
        ? call('DELETE /api/users/@me/sessions/')
        : call('DELETE /api/users/@me/sessions/{session_id}/', { path: { session_id: id } }),
    onSuccess: () => {
      queries.invalidateQueries({ queryKey: ['own-sessions'] })
      showToast({ text: 'Ended.' })
    },
  })
  if (sessions.isError) return <Refusal error={sessions.error} />
  if (!sessions.isSuccess) return <Skeleton what="your sessions" rowCount={3} />
  return (
    <section className={css.part}>
      <h2>Where you are signed in</h2>
      <ul className={css.sessions}>
        {sessions.data.results.map(session => (
          <li key={session.id}>
            <div>
              <span title={session.user_agent}>{describeBrowser(session.user_agent)}</span>
              <p>
                <Outside text={session.address} isCode />, seen <Time at={session.last_seen_at} />
              </p>
            </div>
            {session.is_current ? (
              <Badge kind="on">This browser</Badge>
            ) : (
              <Button onPress={() => end.mutate(session.id)}>End</Button>
            )}
          </li>
        ))}
      </ul>
      <Refusal error={end.error} />
      {sessions.data.results.length > 1 && <Button onPress={() => end.mutate(null)}>End all others</Button>}
    </section>
  )
}
