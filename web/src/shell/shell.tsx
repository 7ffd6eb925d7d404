// What surrounds every screen: the rail with the screens, the palette and the menu of who is signed in.

import { useSuspenseQuery } from '@tanstack/react-query'
import { Link, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { sessionQuery } from '../api/session.ts'
import { Bar } from '../components/controls/bar.tsx'
import { Button, IconButton } from '../components/controls/button.tsx'
import { Icon } from '../components/icon.tsx'
import { MenuButton } from '../components/overlays/menu.tsx'
import { formatOutsideText } from '../components/text/outside-text.ts'
import { ConnectionBars } from './connection-bars.tsx'
import { Palette } from './palette.tsx'
import { RouteLink } from './route-link.tsx'
import { ScreenLink } from './screen-link.tsx'
import { listScreens } from './screens.ts'
import css from './shell.module.css'
import { modifierName, useShortcut } from './shortcuts.ts'
import { signOut } from './sign-out.ts'
import { chooseTheme, themeChoices } from './themes.ts'

export function Shell() {
  const { data: session } = useSuspenseQuery(sessionQuery)
  const { projectId = String(session.projects[0]?.id ?? '') } = useParams({ strict: false })
  const [isPaletteOpen, setPaletteOpen] = useState(false)
  useShortcut('k', () => {
    // A dialog that is open has to be answered first.
    if (document.querySelector('[role="dialog"], [role="alertdialog"]') === null) setPaletteOpen(true)
  })
  const [firstUserId] = useState(session.user.id)
  useEffect(() => {
    // Somebody else has signed in in another tab: nothing on this page is theirs.
    if (session.user.id !== firstUserId) location.assign('/ui/')
  }, [session.user.id, firstUserId])
  const navigate = useNavigate()
  const screens = listScreens(session, projectId)
  const { user } = session
  return (
    <div className={css.shell}>
      <a href="#content" className={css.skip}>
        Skip to the content
      </a>
      <header className={css.top}>
        <Link to="/" className={css.brand}>
          <Icon name="flag" size={18} />
          Pennon
        </Link>
        <div className={css.search}>
          <Button icon="search" onPress={() => setPaletteOpen(true)}>
            Go to … <kbd>{modifierName}K</kbd>
          </Button>
        </div>
        <MenuButton
          label="Your account"
          items={[
            { id: 'me', label: formatOutsideText(user.name || user.email || 'You') },
            ...themeChoices.map((theme, place) => ({
              ...{ id: theme.id, label: theme.label, icon: theme.icon, startsGroup: place === 0 },
            })),
            { id: 'sign-out', label: 'Sign out', startsGroup: true },
          ]}
          onAction={id => {
            const theme = themeChoices.find(one => one.id === id)
            if (theme !== undefined) chooseTheme(theme.id)
            else if (id === 'me') navigate({ to: '/me' })
            else signOut()
          }}
        >
          <IconButton icon="user" label="Your account" />
        </MenuButton>
      </header>
      <nav className={css.rail} aria-label="Screens">
        {screens.map(screen => (
          <ScreenLink key={screen.to} screen={screen} className={css.railLink!} />
        ))}
      </nav>
      <main id="content" className={css.content}>
        <ConnectionBars session={session} />
        {!user.has_password && (
          <Bar kind="caution" action={<RouteLink to="/me">Choose a password</RouteLink>}>
            You are signed in on this browser alone, and have no password to come back with.
          </Bar>
        )}
        <Outlet />
      </main>
      <Palette isOpen={isPaletteOpen} onClose={() => setPaletteOpen(false)} screens={screens} />
    </div>
  )
}
