"A real browser for tests: Chromium with ChromeDriver, without a screen."
import shutil
from contextlib import contextmanager

import pytest

CHROME = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
OPTIONS = ('--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run',
           '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars')

needs_browser = pytest.mark.skipif(not CHROME or not shutil.which('chromedriver'),
                                   reason='no Chromium with ChromeDriver is installed')

@contextmanager
def browser(width=1280, dark=False):
    "A window of this width."
    from selenium import webdriver
    options = webdriver.ChromeOptions()
    options.binary_location = CHROME
    for argument in OPTIONS: options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which('chromedriver')))
    try:
        if dark:
            driver.execute_cdp_cmd('Emulation.setEmulatedMedia',
                                   dict(features=[dict(name='prefers-color-scheme', value='dark')]))
        driver.set_window_size(width, 1000)
        driver.implicitly_wait(10)
        yield driver
    finally: driver.quit()

def fits(driver):
    "Nothing is wider than the window."
    return driver.execute_script('return document.documentElement.scrollWidth <= window.innerWidth')

def asked_elsewhere(driver):
    "Addresses outside the page's own server that were asked for."
    return driver.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin) "
        "&& !n.startsWith('data:'))")
