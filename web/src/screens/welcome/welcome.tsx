// Where a one-time link leads: to one's first steps, from an invitation, or back in after a forgotten password.

import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import type { Operations } from '../../api/schema.ts'
import { sessionQuery } from '../../api/session.ts'
import { Button } from '../../components/controls/button.tsx'
import { TextField } from '../../components/fields/text-field.tsx'
import { Skeleton } from '../../components/states/skeleton.tsx'
import { ErrorState, Gone } from '../../components/states/states.tsx'
import { RouteLink } from '../../shell/route-link.tsx'
import { EntryForm } from '../sign-in/entry-form.tsx'
import { Refusal } from '../sign-in/refusal.tsx'

type CheckedLink = Operations['POST /api/session/link/check/']['answer']

const titles = {
  welcome: 'Welcome to Pennon',
  invitation: 'Welcome to Pennon',
  reset: 'Choose a new password',
} as const

/** Read once, and taken out of the address: it is a secret. */
function takeToken(): string {
  const token = location.hash.slice(1)
  if (token !== '') history.replaceState(history.state, '', location.pathname)
  return token
}

export function Welcome() {
  const [token] = useState(takeToken)
  const link = useQuery({
    queryKey: ['link', token],
    queryFn: () => call('POST /api/session/link/check/', { body: { token } }),
    enabled: token !== '',
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (token === '')
    return (
      <EntryForm title="Welcome to Pennon">
        <Gone title="This page needs a link">
          Open the whole link that you were given, or <RouteLink to="/sign-in">sign in</RouteLink>.
        </Gone>
      </EntryForm>
    )
  if (link.isError)
    return (
      <EntryForm title="Welcome to Pennon">
        <ErrorState
          title="This link cannot be used"
          code={(link.error as { code?: string }).code ?? ''}
          onRetry={link.refetch}
        >
          {link.error.message} <RouteLink to="/sign-in">Sign in</RouteLink> if you have a password, or ask for another
          link: on the machine that runs Pennon, <code>pennon sign-in-link</code> prints one.
        </ErrorState>
      </EntryForm>
    )
  if (!link.isSuccess)
    return (
      <EntryForm title="Welcome to Pennon">
        <Skeleton what="The link" rowCount={3} />
      </EntryForm>
    )
  return <LinkForm token={token} link={link.data} />
}

function LinkForm({ token, link }: { token: string; link: CheckedLink }) {
  const [name, setName] = useState(link.name)
  const [email, setEmail] = useState(link.email ?? '')
  const [password, setPassword] = useState('')
  const navigate = useNavigate()
  const spend = useMutation({
    mutationFn: (withPassword: boolean) =>
      call('POST /api/session/link/', {
        body: {
          token,
          ...(name.trim() !== '' && { name }),
          ...(email.trim() !== '' && { email }),
          ...(withPassword && password !== '' && { password }),
        },
      }),
    onSuccess: session => {
      queries.clear()
      queries.setQueryData(sessionQuery.queryKey, session)
      navigate({ to: '/', replace: true })
    },
  })
  const isReset = link.purpose === 'reset'
  const missing = !isReset && email.trim() === '' ? 'Type your e-mail address first' : null
  return (
    <EntryForm title={titles[link.purpose]} onSubmit={() => spend.mutate(true)}>
      {!isReset && (
        <p>{link.is_new_user ? `You will be ${article[link.role]}.` : 'You have an account here already.'}</p>
      )}
      {!isReset && <TextField label="Name" name="name" autoComplete="name" value={name} onChange={setName} autoFocus />}
      <TextField
        label="E-mail"
        type="email"
        name="email"
        autoComplete="username"
        value={email}
        onChange={setEmail}
        isReadOnly={isReset}
        help={isReset ? undefined : 'With it you sign in. Nothing is sent to it.'}
      />
      <TextField
        label="Password"
        type="password"
        name="password"
        autoComplete="new-password"
        value={password}
        onChange={setPassword}
        help="12 characters or more. A sentence is fine."
      />
      <Refusal error={spend.error} />
      <Button
        type="submit"
        kind="filled"
        isBusy={spend.isPending}
        disabledReason={missing ?? (password === '' ? 'Type a password first' : null)}
      >
        {isReset ? 'Change password and sign in' : 'Sign in'}
      </Button>
      {link.purpose === 'welcome' && (
        <Button kind="bare" isBusy={spend.isPending} onPress={() => spend.mutate(false)}>
          Later: stay signed in on this browser
        </Button>
      )}
    </EntryForm>
  )
}

const article = { viewer: 'a viewer', editor: 'an editor', admin: 'an admin' } as const
