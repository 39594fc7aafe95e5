import time, pytest
@pytest.mark.timeout(13)
def test_hang(spark):
    time.sleep(100)
